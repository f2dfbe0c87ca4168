"""Deliberate mistakes: change the code in one place, run the tests nearest to it, count how many notice.

    share caught = mutants that a test fails on, or that run out of time / mutants tried

`make mutants` draws places at random, and at each place one of the mutations that cosmic-ray knows. A mutant is tried
in a copy of the tree of its own. What is left out, and why, is listed in `exempt.py`; which tests are nearest, in
`mirrors.py`.
"""
