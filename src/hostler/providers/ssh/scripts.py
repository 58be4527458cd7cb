"""What is said to a host's shell: take, look, free. Texts only.

A host is taken by the appearance of one file, `machine.json`, which is the label of its machine:
a hard link is made whole or not at all, and never over another.
"""

from __future__ import annotations

import shlex
from typing import Final

from hostler.ports.commands import LEASE_MARK
from hostler.ports.posix import CLEARED_NOT, kill_script
from hostler.providers.ssh.options import Host

QUARANTINED: Final = 71
TAKEN: Final = 72
UNUSABLE: Final = 73
NOT_OURS: Final = 74
"""Exit codes of the scripts, from where no command's own are likely; `CLEARED_NOT` is another."""


def _enter(host: Host) -> str:
    folder = shlex.quote(host.folder)
    return (
        f'cd "$HOME" 2>/dev/null; umask 077; mkdir -p {folder} && cd {folder} || exit {UNUSABLE}\n'
    )


def _guard(machine_id: str) -> str:
    """Go on only if this is the machine that has the host."""
    told = shlex.quote(f'"machine_id":"{machine_id}"')
    return f"grep -qsF {told} machine.json || exit {NOT_OURS}\n"


def look_script(host: Host) -> str:
    """Print the label of whoever has the host; nothing: nobody has."""
    folder = shlex.quote(host.folder)
    return (
        'cd "$HOME" 2>/dev/null\n'
        f"[ -e {folder}/machine.json ] && cat {folder}/machine.json\n"
        "exit 0\n"
    )


def take_script(host: Host, label: str) -> str:
    """Take the host for the machine of a label, or print who has it or why nobody may."""
    return (
        _enter(host)
        + f"[ -e quarantine ] && {{ cat quarantine; exit {QUARANTINED}; }}\n"
        + f"printf %s {shlex.quote(label)} >birth.$$\n"
        + "ln birth.$$ machine.json 2>/dev/null; is_taken=$?; rm -f birth.$$\n"
        + f"[ $is_taken = 0 ] || {{ cat machine.json; exit {TAKEN}; }}\n"
    )


def keep_script(host: Host, machine_id: str, silence_ms: int) -> str:
    """Let a machine that has the host watch for the silence of its server.

    The keeper is a loop in the background. It frees the host, as a stop does, when nobody has made
    `alive` anew during a whole silence.
    """
    name = shlex.quote(machine_id)
    silence_s = max(1, silence_ms // 1_000)
    loop = (
        f"while [ -e alive ]; do rm -f alive; sleep {silence_s}; done\n"
        # The clean-up looks for our mark; itself it must not carry it.
        f"unset {LEASE_MARK}; exec /bin/sh ./free.sh\n"
    )
    return (
        _enter(host)
        + _guard(machine_id)
        + f"mkdir -p {name}/leases && cd {name} || exit {UNUSABLE}\n"
        + ": >alive\n"
        + "[ -e keeper ] && kill -0 $(cat keeper) 2>/dev/null && exit 0\n"
        + f"printf %s {shlex.quote(free_script(host, machine_id))} >free.sh\n"
        + f'export {LEASE_MARK}="$PWD"\n'
        + f"/bin/sh -c {shlex.quote(loop)} </dev/null >/dev/null 2>&1 &\n"
        + "echo $! >keeper\n"
    )


def probe_script(host: Host, machine_id: str) -> str:
    """Tell the machine that its server lives, and print where its folder is."""
    name = shlex.quote(machine_id)
    return _enter(host) + _guard(machine_id) + f"cd {name} && : >alive && pwd && echo ready\n"


def free_script(host: Host, machine_id: str) -> str:
    """End everything of a machine, clean, and let the host be taken again.

    May be run again wherever it was cut off. When cleaning fails the host is put into quarantine:
    the machine is gone, and the host is left alone until somebody removes the file.
    """
    name = shlex.quote(machine_id)
    lines = [_enter(host) + _guard(machine_id), "here=$PWD\n"]
    lines.append(kill_script(f'"{LEASE_MARK}=$here/{machine_id}"'))
    if host.has_own_user:
        lines.append(_KILL_USER)
    if host.cleanup:
        seconds = max(1, host.cleanup_max_ms // 1_000)
        lines.append(
            f'(cd "$HOME" && timeout {seconds} {shlex.join(host.cleanup)}) </dev/null'
            f' >cleanup.log 2>&1 || {{ echo "{machine_id}: the clean-up command failed with'
            f' code $?: see $here/cleanup.log" >quarantine; }}\n'
        )
    lines.append(
        f"rm -rf {name} || echo '{machine_id}: its folder could not be removed' >quarantine\n"
        "rm -f machine.json\n"
    )
    return "".join(lines)


_KILL_USER: Final = f"""
spared=" $$ "; p=$$
while [ "${{p:-0}}" -gt 1 ]; do
    p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status 2>/dev/null); spared="$spared$p "
done
rounds=0
while :; do
    left=
    for p in /proc/[0-9]*; do
        pid=${{p#/proc/}}
        case "$spared" in *" $pid "*) continue ;; esac
        [ -O "$p" ] || continue
        grep -qs '^State:[[:space:]]*Z' $p/status && continue
        [ "$(sed -n 's/^PPid:[[:space:]]*//p' $p/status 2>/dev/null)" = $$ ] && continue
        kill -9 $pid 2>/dev/null && left=1
    done
    [ -n "$left" ] || break
    [ $rounds -lt 100 ] || exit {CLEARED_NOT}
    rounds=$((rounds + 1)); sleep 0.05
done
"""
"""Ends all processes of the user but this shell, its parents (our sshd) and its children."""


def state_script(host: Host) -> str:
    """Print what stands against using the host; nothing: nothing does. Changes nothing."""
    folder = shlex.quote(host.folder)
    return (
        'cd "$HOME" 2>/dev/null\n'
        "for tool in dd grep sed ln mkdir rm sleep cut tr timeout; do\n"
        '    command -v $tool >/dev/null 2>&1 || echo "$tool is not there"\n'
        "done\n"
        '[ -r /proc/self/environ ] || echo "/proc is not there"\n'
        f'[ -e {folder}/quarantine ] && echo "in quarantine: $(cat {folder}/quarantine);'
        f' clean the host and remove {host.folder}/quarantine"\n'
        "exit 0\n"
    )
