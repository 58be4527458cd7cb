"""Sentences: every reason in words, and what a person can do about it.

The words explain; programs go by the reason. A reason without a sentence fails the tests.
"""

from __future__ import annotations

from typing import Final

from hostler.model.reason import Reason

SENTENCES: Final[dict[Reason, tuple[str, str]]] = {
    # a node is not chosen
    Reason.WRONG_POOL: (
        "The node is in another pool.",
        "Name its pool as the bundle's pool or as a fallback.",
    ),
    Reason.WRONG_TIER: (
        "The node's tier is not in the configuration of its pool.",
        "Put the tier back, or drain the node.",
    ),
    Reason.NODE_NOT_RUNNING: (
        "The node is not there: not yet, or no more.",
        "Nothing; it takes work when it is ready, or another one does.",
    ),
    Reason.UNREACHABLE: (
        "Nothing is heard from the node's agent.",
        "Look at the network and at the agent on the node.",
    ),
    Reason.CORDONED: (
        "The node is cordoned and takes nothing new.",
        "Uncordon it when it may take work again.",
    ),
    Reason.DRAINING: (
        "The node is being emptied or retires.",
        "Nothing; uncordon it to end a drain that you asked for.",
    ),
    Reason.QUARANTINED: (
        "The node refused several jobs, or was lost, and takes no new ones for a while.",
        "Look at its agent's log; uncordon the node to trust it now.",
    ),
    Reason.ON_PROBATION: (
        "The node was in quarantine and has one job on trial.",
        "Nothing; when that one is ready, the node takes others. Uncordon it to trust it now.",
    ),
    Reason.NO_AGENT: (
        "Its provider's machines run no agent of ours: they take leases, and no jobs.",
        "Place bundles in a tier whose provider has agents, such as `local`, or let agents join.",
    ),
    Reason.EXCLUDED_RECENT_FAILURE: (
        "The replica failed here lately, or the node's agent refused it.",
        "Nothing; the node is open to it again after a while.",
    ),
    Reason.NOT_REPORTED: (
        "The agent has not yet said what the node has.",
        "Nothing; if it stays so, look at the agent's log.",
    ),
    Reason.CAPACITY: (
        "The node has too little free capacity.",
        "Free some, add nodes, or require less.",
    ),
    Reason.CORES: (
        "The node has too few free cores.",
        "Free some, add nodes, or require fewer.",
    ),
    Reason.MEMORY: (
        "The node has too little free memory.",
        "Free some, add nodes, or require less.",
    ),
    Reason.CAPABILITY_MISSING: (
        "The node lacks a capability that is required.",
        "Add nodes that have it, or correct its name in the requirement.",
    ),
    Reason.CAPABILITY_COUNT: (
        "The node has too few free units of a capability.",
        "Free some, add nodes, or require fewer.",
    ),
    Reason.CAPABILITY_ATTRIBUTE: (
        "The node's free units of a capability have other attributes than those required.",
        "Compare the attributes that the agent reports with those required.",
    ),
    Reason.SPREAD_NODE: (
        "Another replica of the same job is on the node.",
        "Add nodes: two replicas of one job never share one.",
    ),
    Reason.SPREAD_ZONE: (
        "Another replica of the same job is, or may be, in the same zone.",
        "Add nodes in another zone, name the zones of tiers, or make the rule preferred.",
    ),
    Reason.SPREAD_LABEL: (
        "Another replica of the same job is, or may be, where a label has the same value.",
        "Label nodes with other values, label those that have none, or make the rule preferred.",
    ),
    Reason.FAILURE_DOMAIN: (
        "Primary and backup would share what `backup_apart` keeps them from sharing.",
        "Add nodes in another domain, or make the rule preferred.",
    ),
    Reason.AFFINITY: (
        "None of those that the replica wants to be near is there.",
        "Place them first, add room near them, or make the wish preferred.",
    ),
    Reason.ANTI_AFFINITY: (
        "Somebody is there, or may be, from whom the replica is to be apart.",
        "Add nodes elsewhere, or make the wish (of one or the other) preferred.",
    ),
    Reason.COLOCATION: (
        "The other jobs of the replica are on another node, and it belongs with them.",
        "Free room on their node, or drain it so that all of them move.",
    ),
    Reason.NODE_LABELS: (
        "The node's labels are not as the job asks.",
        "Label the node or its tier, or make the rule preferred.",
    ),
    Reason.NODE_EXCLUDED: (
        "The job excludes the node, or the zone, tier or provider that it is in.",
        "Take it out of `exclude`, or add nodes elsewhere.",
    ),
    Reason.OFFER_NOT_ALLOWED: (
        "The job allows only other offers.",
        "Add the node's offer to `offers`, or add nodes of an allowed one.",
    ),
    Reason.SPREAD_TIER: (
        "Another replica of the same job is in the same tier.",
        "Add nodes to another tier, or make the rule preferred.",
    ),
    Reason.SPREAD_PROVIDER: (
        "Another replica of the same job is with the same provider.",
        "Add nodes of another provider, or make the rule preferred.",
    ),
    Reason.RELIABILITY: (
        "The primary may not be on capacity that the provider can take back.",
        "Add reliable nodes, or allow an interruptible primary.",
    ),
    Reason.SPARE_RESERVED: (
        "The node is kept as a spare for recoveries.",
        "Add nodes, or keep fewer spares.",
    ),
    Reason.LEASED: (
        "The node is held by leases.",
        "Wait for them to end, or use another pool for jobs.",
    ),
    Reason.SLOTS_FULL: (
        "Every slot of the node is held.",
        "Wait for a release, or raise the pool's slot count.",
    ),
    # a replica or a lease waits
    Reason.NO_CAPACITY: (
        "No node of its pools has room.",
        "Free room, add nodes, or add an elastic tier or a fallback pool.",
    ),
    Reason.ROOM_CLAIMED: (
        "Lower work is being stopped to make room for it.",
        "Nothing; it starts there when that has ended.",
    ),
    Reason.GANG_INCOMPLETE: (
        "Its bundle starts whole or not at all, and not all of it has a place.",
        "Free room or add nodes for the replica that is named, or submit it without `gang`.",
    ),
    Reason.PREEMPTED: (
        "It gave way to more important work.",
        "Nothing while it waits for room; start the job if it was dropped, or raise its band.",
    ),
    Reason.MACHINE_STARTING: (
        "Its machine is being launched.",
        "Nothing; it goes on when the agent there has said hello.",
    ),
    Reason.LIMIT_REACHED: (
        "The tier has as many machines as it may have.",
        "Raise the tier's node_count_max, or free room.",
    ),
    Reason.LAUNCHES_IN_FLIGHT: (
        "The pool launches as many machines at once as it may.",
        "Nothing; the next launch follows when one is done. Or raise launch_count_max.",
    ),
    Reason.LAUNCH_RATE: (
        "The provider is asked for no more machines a minute than it may be.",
        "Nothing; the next launch follows in a moment. Or raise launches_per_minute_max.",
    ),
    Reason.GROWTH_STOPPED: (
        "Machines of the tier failed to boot, one after another, so no more are launched.",
        "See why in `hostler explain pool`, mend it, then reload or run `hostler pool retry`.",
    ),
    Reason.PROVIDER_PAUSED: (
        "The provider said that it is asked too often, was not reached, or let nobody in.",
        "Nothing; it is asked again soon. If it stays so, look at the provider and credentials.",
    ),
    Reason.OFFER_COOLING_DOWN: (
        "The machines that would do could not be launched lately.",
        "Nothing; it is tried again soon. Look at the failure, or add offers.",
    ),
    Reason.NO_OFFER_FITS: (
        "No machine that its pools can launch is large enough.",
        "Add a larger offer, or require less.",
    ),
    Reason.POOL_NOT_CONFIGURED: (
        "Its pool is not in the configuration.",
        "Configure the pool, or name another.",
    ),
    Reason.POOL_DISABLED: (
        "Its pool has left the configuration and takes no new work.",
        "Put the pool back, or name another.",
    ),
    Reason.KEY_CAP_REACHED: (
        "The leases of its fairness key are on as many nodes as they may be.",
        "Release some, or raise the pool's lease_per_key_max.",
    ),
    Reason.BUDGET_SPENT: (
        "What it could cost does not fit into what a budget has left.",
        "Wait until the budget begins anew or something is given back; or raise its cap.",
    ),
    Reason.BUDGET_IN_USE: (
        "As much is in use at once as a budget allows.",
        "Wait for something to end, or raise the budget's concurrent cap.",
    ),
    Reason.AFFINITY_WAIT: (
        "It waits for one node, which it prefers or requires, and that node is not free.",
        "Nothing; a preference ends after affinity_wait_ms. Or ask without it.",
    ),
    Reason.BACKING_OFF: (
        "It failed lately and waits for its next try.",
        "Nothing; look at its logs for why it failed.",
    ),
    Reason.RESTART_CEILING: (
        "It failed more often than it is restarted.",
        "Look at its logs; submit a better launch, or start the job.",
    ),
    Reason.DORMANT: (
        "It waits to be started by an operator.",
        "Start the job.",
    ),
    Reason.FENCE_PENDING: (
        "It is not yet certain that the old copy can no longer act.",
        "Nothing; or have the machine stopped, which makes it certain.",
    ),
    Reason.MASS_LOSS_BRAKE: (
        "So many nodes went silent at once that the fault is likelier ours.",
        "Look at the network; it goes on when the window has passed, or on `hostler confirm-lost`.",
    ),
    Reason.NO_BETTER_PLACE: (
        "Its place breaks a rule that it had better keep, and no other place breaks fewer.",
        "Add room where the rule is kept; it moves by itself when that has been there for a while.",
    ),
    Reason.BETTER_PLACE_SETTLING: (
        "There is a place that breaks fewer rules; it must be there for a while first.",
        "Nothing; it moves when the place is still there then.",
    ),
    Reason.MOVED_LATELY: (
        "It was moved lately, and is left alone for a while; longer each time.",
        "Nothing; if it goes on, look for what comes and goes.",
    ),
    Reason.SIBLINGS_UNSETTLED: (
        "Another replica of its bundle is on the move or not ready, and they move one at a time.",
        "Nothing; explain the bundle if it stays so.",
    ),
    Reason.LAST_READY_COPY: (
        "It is the only copy of its job that is ready, and must be stopped to be moved.",
        "Run more copies, or let copies overlap (`overlap`).",
    ),
    Reason.BUNDLE_BROKEN: (
        "Another replica of its bundle is over its restart ceiling.",
        "Submit a better launch for that one, or start its job.",
    ),
    Reason.BAND_DROPPED: (
        "It failed, and bronze is not recovered.",
        "Start the job, or give it another band.",
    ),
    Reason.OUTSIDE_TIMETABLE: (
        "Its bundle's timetable has it not running now.",
        "`hostler get upcoming` says when it starts; `hostler start BUNDLE/JOB` starts it now.",
    ),
    Reason.STOPPED_BY_OPERATOR: (
        "Somebody stopped it, or it is no longer desired.",
        "`hostler start BUNDLE/JOB` starts it again.",
    ),
    Reason.MIGRATING: (
        "It is on its way back from a move that was given up.",
        "Nothing: it stays where it is, and is moved again if that is still wanted.",
    ),
    Reason.OVERLAP_FORBIDDEN: (
        "Two copies of it must not run at once, so its place ends before the next one begins.",
        "Write `overlap: allowed` into the job if a second copy does no harm.",
    ),
    Reason.DISRUPTION_BUDGET: (
        "A disruption budget allows nothing more to be moved now.",
        "Nothing; it moves when others are back or the budget's window ends. Or change the budget.",
    ),
    Reason.SERVICE_NOT_READY: (
        "It has a place, and a node service that it needs there is not ready.",
        "Nothing; it starts when the service is ready, or goes elsewhere. Look at the service.",
    ),
    Reason.MAINTENANCE: (
        "Its machine is about to be worked on, or is: it is empty or being emptied.",
        "Nothing; it takes work again when that is over. Uncordon it to have it left alone now.",
    ),
    # a node that is little used stays, or goes
    Reason.CONSOLIDATING: (
        "What runs on it is moved to other nodes, so that its machine can go.",
        "Nothing; uncordon it to call that off, or cordon it to keep it empty.",
    ),
    Reason.WELL_USED: (
        "More of it is used than of nodes that are emptied to save their machines.",
        "Nothing; raise `consolidation.used_max` of its pool to have it emptied.",
    ),
    Reason.NO_NET_GAIN: (
        "Its machine costs less in the time of payback than moving what is there.",
        "Nothing; raise `consolidation.payback` of its pool, or lower `move_cost`.",
    ),
    Reason.NOT_SETTLED: (
        "Something on it has not been ready for long, so it is not emptied yet.",
        "Nothing; it is looked at again when that has settled.",
    ),
    Reason.MOVES_SPENT: (
        "As many replicas were moved to save machines as may be within the window.",
        "Nothing; raise `consolidation.moves_max` of its pool to be faster.",
    ),
    # a lease was refused
    Reason.TIMED_OUT: (
        "No slot was free in the time that was given.",
        "Ask with a longer timeout, or keep more nodes warm.",
    ),
    Reason.CANCELLED: (
        "Whoever asked has left the line.",
        "Nothing.",
    ),
    Reason.OVERLOADED: (
        "The waiting line is full.",
        "Ask again later, or keep more nodes warm.",
    ),
    Reason.UNSATISFIABLE: (
        "No node or offer of the pool could ever serve the request.",
        "Require less, or add larger offers.",
    ),
    Reason.AFFINITY_GONE: (
        "The one node that it requires takes no more leases.",
        "Ask without requiring that node; what was kept there is lost.",
    ),
    # a node stays, or waits
    Reason.BOOTING: (
        "Its machine is not there yet, or its agent has not said hello.",
        "Nothing; it is given up when its boot time has passed.",
    ),
    Reason.READY_CHECK: (
        "Its agent has come, and its pool's ready check has not passed.",
        "Look at what the check wrote; it is tried again until its deadline.",
    ),
    Reason.REMAINING_LIFE: (
        "The node will be too old before a lease that begins now may end.",
        "Nothing; another takes its place. Raise age_max, or lower lease_max.",
    ),
    Reason.WARM_FLOOR: (
        "It is kept warm for leases.",
        "Lower the pool's warm_count to let it go.",
    ),
    Reason.SPARE_TARGET: (
        "It is kept as a spare for recoveries.",
        "Lower the pool's spare_count to let it go.",
    ),
    Reason.REPLACING: (
        "Machines that are out of date or old are being replaced, a few at a time.",
        "Nothing; raise the rollout's surge or unavailable to be faster.",
    ),
    Reason.IN_USE: (
        "Something still runs or is held on it.",
        "Nothing; it goes on when the node is empty or its deadline has come.",
    ),
    Reason.STOP_UNCONFIRMED: (
        "The provider has not said that the machine is gone.",
        "Nothing; it is asked until it does. If it stays so, look at the provider.",
    ),
    Reason.QUARANTINE_BRAKE: (
        "It refuses jobs, as half of its pool does: the fault is likelier in the jobs.",
        "Look at why the jobs are refused; uncordon nodes that you trust.",
    ),
    Reason.FOREIGN_MACHINE: (
        "A machine carries this fleet's label and the name of a node that the fleet never had.",
        "Find out whose it is: another server's with this fleet id? `hostler end` ends it.",
    ),
    Reason.SILENT: (
        "Nothing is heard of its agent.",
        "Look at the network and at the agent; after a while its work is placed elsewhere.",
    ),
    Reason.LISTENING_TOO_SHORT: (
        "The server has not listened for long enough to call anybody silent.",
        "Nothing.",
    ),
}
"""By reason: what it means or waits for, and what a person can do."""
