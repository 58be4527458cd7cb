"""Every number that bounds something in the core and is not a setting, with its reason."""

from __future__ import annotations

from hostler.model.command import CheckReady, Command, EndLease, LaunchMachine

ROUNDS_MAX = 32
"""Rounds of controllers within one step. A chain of reactions is about six long (a node is lost,
its work is displaced, placed, its node launched, its start sent, a lease regranted); more than
thirty means that two controllers undo each other."""

OUTBOX_BACKOFF_MS_MIN = 500
OUTBOX_BACKOFF_MS_MAX = 60_000
"""First and longest pause between attempts at one command: quick enough that a blip is not felt,
slow enough that a provider that is down is not hammered (spec/placement.md 5.12: to 60 s)."""

PATIENCE_MS = {
    "launch_machine": 600_000,
    "stop_machine": 60_000,
    "check_machine": 15_000,
    "list_machines": 30_000,
    "start_allocation": 30_000,
    "configure_allocation": 30_000,
    "assign_role": 30_000,
    "stop_allocation": 30_000,
    "check_ready": 15_000,
    "end_lease": 30_000,
}
"""How long an attempt may be out before its outcome counts as unknown, by command (spec/leasing.md
appendix 12: provision 600 s, probe 10 s, destroy 60 s, list 30 s)."""

LAUNCH_PATIENCE_MS_MIN = 60_000
"""What a launch is given that goes out again when the time of its node is nearly over: after a
restart nobody has listened for an answer, and most providers give one within seconds."""


def patience_ms(command: Command, age_ms: int = 0) -> int:
    """Return how long one attempt may be out, at a command that was given so long ago.

    A launch: until the time to boot of its node is over, which it spends as one that boots does.
    """
    base_ms = PATIENCE_MS[str(type(command).__struct_config__.tag)]
    match command:
        case EndLease():
            return base_ms + command.clean_up_ms
        case CheckReady():
            return base_ms + command.timeout_ms
        case LaunchMachine():
            least_ms = min(command.boot_ms, LAUNCH_PATIENCE_MS_MIN)
            return min(base_ms, max(command.boot_ms - age_ms, least_ms))
        case _:
            return base_ms


LAUNCH_ATTEMPTS_MAX = 5
"""Attempts at one launch; then the node is given up and another offer may serve. None begins after
the node's time to boot."""

PROVIDER_PAUSE_MS_MIN = 1_000
"""First pause of a whole provider that says "too often" or is not reached, doubling to
COOLDOWN_MS_MAX; a provider that names a time is left alone for at least that."""

BOOT_TRIAL_MS = 900_000
"""How often one machine is tried in a tier whose machines do not boot (trial T03: it goes on by
itself after a good one). Four an hour cost little and find out soon enough."""

BOOT_LOG_CHARS_MAX = 4_000
"""Of what a machine wrote that did not boot: a screen, and no burden for the store where a thousand
fail."""

READY_INTERVAL_MS_MIN = 100
"""Shortest pause between two tries of a ready check: each costs a command there and two writes."""

BOOT_FAILURES_KEPT_MAX = 3
"""Failed boots that are kept as evidence for each tier."""

BOOT_CHECK_MS = 15_000
"""How often a provider is asked whether a machine that boots still exists, so that one which died
is replaced long before its boot deadline."""

STUCK_AFTER_MS = 300_000
"""How long a machine may take to be gone before people are told. Five times the patience of a
stop: the slowest clouds need two minutes."""

COOLDOWN_MS_MIN = 5_000
COOLDOWN_MS_MAX = 300_000
"""Pause of an offer after a failed launch, doubling (spec/placement.md 5.12: set aside 300 s)."""

TRACE_NODES_MAX = 20
"""Nodes kept by name in one attempt of a trace; the rest is counts per reason (C-092)."""

CANDIDATES_KEPT_MAX = 5
"""Best candidates kept with their scores."""

LABEL_COUNT_MAX = 64
"""Labels of one node: each is a fact that rules may ask for, and a person keeps track of fewer."""

DISPLACED_COUNT_MAX = 1_000
"""Replicas that are placed anew in thought for one loss; whoever comes after counts as hurt. A zone
of ten thousand would take a second to think through, and is not survived by chance."""

DEBT_LOOK_MS_MIN = 60_000
DEBT_LOOK_MS_MAX = 600_000
"""First and longest pause between looks for a better place: a look costs a decision, and what opens
brings the next one forward anyway."""

DEBTS_PER_STEP_MAX = 100
"""Replicas in debt that one step brings forward when something opens: each may cost a decision."""

DEBT_MOVES_KEPT_MAX = 8
"""Moves that are remembered: a pause that has doubled so often is longer than most of a day."""

RETRY_MS_MAX = 60_000
"""Longest back-off of one replica between recoveries."""

RECEIPT_MS = 86_400_000
"""How long an idempotency key is remembered: a day outlives any client's retries."""

LISTS_WITHOUT_MACHINE = 2
"""Complete lists in a row that must miss a machine before its absence counts."""

COOLDOWN_MEMORY_MS = 600_000
"""How long after its end a pause is remembered, so that an offer that keeps failing is paused for
longer each time. Twice the longest pause: an offer that failed less often than that is well."""

NOTICE_MARGIN_MS = 5_000
"""Time between the end of a clean stop and the announced end of a machine: reports and answers have
to come through, and an agent looks for notices every few seconds only."""

FENCE_MARGIN_MS = 1_000
"""Time between the end of a cut-off agent's own stop and our placing its work elsewhere: a kill
takes milliseconds, and two clocks drift less than 100 ms apart in the minute that is measured."""

WAIT_MS_MAX = 604_800_000
"""Longest time in line that may be asked for: a week (spec/leasing.md 1.2, as every duration)."""

FRONTS_EXPLAINED_MAX = 16
"""Leases at the front of a line whose reason is kept true in each step, one a requirement; a pool
whose line asks for more different things than that is told the rest when it asks."""

EXCLUDED_COUNT_MAX = 16
"""Nodes that one request for a lease may exclude. Whoever needs more should have the bad ones
poisoned; and each costs a look at every grant."""

AVOIDED_COUNT_MAX = 16
"""Nodes that one replica stays away from at once. More refusals than this within the time of
exclusion say more about the replica than about the nodes."""

REJECTION_BACKOFF_MS_MIN = 1_000
"""Pause after a second refusal in a row, doubling to RETRY_MS_MAX (spec/placement.md 5.12)."""

REPLICA_COUNT_MAX = 100
JOB_COUNT_MAX = 100
"""Bounds of one bundle. A channel has a few of each; more is a mistake in a template, and one
bundle must not fill a step."""

LEASES_OVER_MAX = 100_000
"""Leases that are over and kept to be asked about: fifteen minutes of a hundred a second, about
100 MB. Short runs at a higher rate are remembered for less time."""

RANKINGS_MAX = 64
"""Demands for which each tier keeps its nodes ranked. At 100,000 nodes one takes 1.7 MB; more
kinds of work than this are ranked anew each time they come up."""

PREEMPTION_CHECKS_MAX = 500
"""Sets of victims tried on one node before the search is content with one that has no needless
member: every set of up to eight different ones, and far more where many are alike; 5 ms at most."""

PREEMPTION_NODES_MAX = 500
"""Nodes on which one search looks for victims: with more than that to choose from, the best is
hardly better; 50 ms at most."""

PREEMPTION_FRONT_MAX = 16
"""How far down a line victims are looked for when something may have eased, as long as what holds
those before back is their own affair (rules about their siblings, a claim that they have): whoever
stands behind was looked at when it came, and is again when it stands further in front."""

CLAIM_MARGIN_MS = 30_000
"""How much longer than its grace a victim may take to end before the room that it was to leave is
given up and looked for elsewhere: the patience with one attempt to stop it."""

CROWD_MAX = 24
"""Replicas for which the price of a new machine is reckoned together, and"""
CROWD_LINES_MAX = 8
"""kinds of demand among them beside the buyer's own: enough to see that one large machine serves
cheaper than many small ones; under 1 ms for each machine bought."""

CONSOLIDATION_MS_MAX = 1_800_000
"""How long emptying one node may take before what is left stays: a few turns of a budget."""

CONSOLIDATION_LOOKED_AT_MAX = 500
"""Nodes of a pool looked at in one step, about 5 ms; the others follow a second later."""

CONSOLIDATION_PLANS_MAX = 8
"""Nodes for which other places are looked for in one step: each costs a decision a replica."""

LEFT_ALONE_KEPT_MAX = 256
"""Nodes of a pool remembered as not to be emptied, and"""
LEFT_ALONE_DOUBLINGS_MAX = 10
"""how often the pause of one may double, between"""
LEFT_ALONE_MS_MIN = 600_000
LEFT_ALONE_MS_MAX = 86_400_000
"""ten minutes and a day: what fails again and again disturbs nobody much, whatever the spacing."""

GANG_ROOM_WAYS_MAX = 8
"""Ways tried for one member of a gang for which lower work may end: as many places as things are,
and as many nodes where some would give way."""

GANG_ROOM_LOOKS_MAX = 4_000
"""Nodes looked at for victims, over all members and tries of one gang; 0.4 s at most, on fleets of
hundreds of nodes with victims on each."""

GANG_TRIES_MAX = 256
"""Places tried for the members of one gang before it is said that they do not fit together; every
way for four members on four nodes, and 25 ms at most."""
