"""The agent's own decider: facts in, effects out.

    from hostler.agent.core.step import step

    answer = step(state, inputs, now_ms)    # changes `state`, gives effects and the next wake-up

The contract:

- `step` has no clock, file, process, socket or log. All that happens is a value of
  `hostler.agent.core.inputs`; all that is to be done is a value of `hostler.agent.core.effects`.
  The shell carries effects out *in order*, and may do so after any number of steps.
- `now_ms` is milliseconds since 1970 by a clock that never jumps and goes on while the machine
  sleeps. It must not go backwards.
- `answer.next_wake_at_ms` is when `step` wants to run again though nothing happened; `None` is
  never.
- The first input of a life is `Started`, with everything that the previous life left behind.
- Every effect may be repeated: after a crash the next life decides from what `Started` tells, and
  starts, stops and removals that were carried out already are carried out again without harm.
- Effects that lead to an input say which; if the shell dies in between, the input is lost with it.

What it keeps:

- *One start.* An allocation and epoch is started once, whatever is repeated; a lower epoch than one
  seen is refused; a higher one is started only after the lower has ended.
- *Authority.* Work with `disconnect: stop`, and everything under a lease, is stopped no later than
  `fence_after_ms` after the send time of the last heartbeat that the server acknowledged. The
  supervisors know the same instant (`RememberAuthority`) and keep to it when the agent is dead.
- *Truth before answer.* The report that something ended goes out before the answer to the command
  that ended it.

The simulator runs this same code; see `docs/agent.md` for what its fake shell has to imitate.
"""
