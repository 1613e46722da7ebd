/// How lines are printed. It knows nothing of schedulers, and does not have to: it is within a `SchedulableObject`.
final class Options {
  var prefix = "out"
}
