"""Many runs, each computed once, on all cores."""
