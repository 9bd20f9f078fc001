"""What `import wbsim` gives: experiments, results and captures for notebooks and scripts."""
