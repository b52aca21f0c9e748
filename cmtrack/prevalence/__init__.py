"""How many positives a target holds: densities of labelled scores, estimates, intervals, plans.

``quantify`` is the door; ``estimate`` what comes out; ``binned`` and ``modelled`` the two ways for two classes and
``classes`` the way for more; the other modules are their parts.
"""
