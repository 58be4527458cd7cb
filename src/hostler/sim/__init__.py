"""The simulator: a made-up world in which the real core, agent core, outbox and codec run.

One seed decides everything. A `World` owns one queue and the virtual time; the network, the disk,
the cloud, the machines and the people are parts of it, each with random streams of its own. Only
ports are replaced: what decides is the code of production. Checkers stand apart from all of them,
see the truth that no part of Hostler may see, and stop the run at the first thing that must not be.

    python -m hostler.sim --seeds 200        # a range of made-up histories
    python -m hostler.sim --seed 17          # one of them again
    python -m hostler.sim --scenario FILE    # a history that somebody wrote down
"""
