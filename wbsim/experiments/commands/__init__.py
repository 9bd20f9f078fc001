"""The commands of `wbsim`, one module each; `options` has the options that several of them share."""
