/// What has come of asking for keys, and is to be carried out when the lock of the domain is released.
struct ExclusivityAnswer {
  enum Refusal {
    case taken(ExclusivityKey, by: ExclusivityRequest?)
    case circle(ExclusivityKey, holder: ExclusivityRequest?)
  }

  var isGranted = false
  var refusal: Refusal?
  /// To be cancelled.
  var replaced: [ExclusivityRequest] = []
  /// Others that have got all of their keys.
  var granted: [ExclusivityRequest] = []
  /// Others that have lost theirs again. They find out when they begin.
  var revoked: [ExclusivityRequest?] = []
}
