"""The problems, networks, specs and draws that tests share, by what they are for."""
