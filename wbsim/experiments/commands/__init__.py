"""The commands of `wbsim`, one file each."""
