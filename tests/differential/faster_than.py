"""Compare the speed of this state with a commit's: `make faster-than BASE=COMMIT`, or
`python tests/differential/faster_than.py COMMIT [GROUP...]`.

Both states run in turn on this machine: base, now, now, base, ... Each pair of adjacent
times gives a ratio, now over base; a case has the median and quartiles of its ratios. A case fails
if the lower quartile is above 1.10, and a part (kernel values, commands) if the geometric mean of
its cases is above 1.03, both after repetitions with new processes. The exit status is 1 if
something fails. Counts that differ are listed; memory is printed beside the times.

The processor must be free of other work, or the times of commands are of little use. The first line
names the instruction sets that this machine lacks: measure them on a machine that has them.
"""

import os
import sys
import time
from collections import defaultdict
from compileall import compile_dir
from functools import partial

import commands
import values
from builds import ROOT, base_of
from ratios import MOST, MOST_ON_AVERAGE, SIDES, geometric_mean, is_slower_on_average, to_repeat

PLACE = ROOT / "build" / "faster-than"
LONGEST = 540  # seconds; after that, no case is measured again
BUSY = 0.5  # load of a machine with other work
REPETITIONS = 3
TIMES_AGAIN = {"values": 3, "commands": 2}  # processes, and pairs


def measured(part, cases, measure, latest):
    """Measure the cases of a part; repeat cases that would fail. Print and return the results."""
    found = {}
    for one in measure(cases):
        found[one.case] = one
        print_case(one)
    for _ in range(REPETITIONS):
        again = to_repeat(found.values())
        if not again:
            break
        print(f"\nagain, because these ratios of {part} are too large:")
        for one in measure(again, times=TIMES_AGAIN[part]):
            found[one.case] = one
            print_case(one)
            if time.monotonic() > latest:
                print("no time is left: the other cases keep their ratios")
                return list(found.values())
    return list(found.values())


def print_case(one):
    print(f"{one.ratio}  {one.case.group:15} {one.case!s:24} {one.words}", flush=True)


def measure_values(sites, isas, groups, latest):
    """Measure kernel values; return the results and remarks."""
    names = values.told(sites["base"])["kernels"]
    every = values.value_cases(PLACE / "rows", isas)
    lost = dict.fromkeys(case.kernel for case in every if case.kernel not in names)
    remarks = [f"values: not measured, base has no kernel {name}" for name in lost]
    cases = [case for case in chosen(every, groups) if case.kernel in names]
    found = measured("values", cases, partial(values.measure, sites=sites), latest)
    remarks += [f"{one.case.group} {one.case}: {one.remark}" for one in found if one.remark]
    return found, remarks


def chosen(cases, groups):
    """Return the cases of some groups, by default all; the group `values` is all values-*."""
    return [case for case in cases
            if not groups or {case.group, case.group.partition("-")[0]} & {*groups}]  # fmt: skip


def slower(part, found):
    """Print the means of a part; return a sentence for each failure."""
    groups = defaultdict(list)
    for one in found:
        groups[one.case.group].append(one)
    for group, members in groups.items():
        print(f"{geometric_mean(members):5.2f}  geometric mean of {group}, {len(members)} cases")
    failures = [f"{one.case.group} {one.case}: {one.ratio} is above {MOST:.2f}"
                for one in found if one.ratio.is_slower]  # fmt: skip
    if is_slower_on_average(found):
        mean = geometric_mean(found)
        failures.append(f"the geometric mean of {part}, {mean:.3f}, is above {MOST_ON_AVERAGE:.2f}")
    return failures


def main(commit, *groups):
    isas, absent = values.instruction_sets()
    print(f"not measured, this processor lacks them: {', '.join(absent) or 'none'}")
    print(f"measured with DCSVM_ISA={', '.join(isas)}")
    if os.getloadavg()[0] > BUSY:
        print(f"the load is {os.getloadavg()[0]:.1f}: the times of commands are of little use")
    sites = dict(zip(SIDES, (base_of(commit), ROOT), strict=True))
    compile_dir(ROOT / "dcsvm", quiet=1)  # as pip does for base: else each start compiles
    begun = time.monotonic()
    found, remarks, failures = {}, [], []
    if not groups or any(group.startswith("values") for group in groups):
        try:
            found["values"], remarks = measure_values(sites, isas, groups, begun + LONGEST)
        except values.OtherInterfaceError as error:
            if error.site == ROOT:
                raise
            print(f"kernel values are not measured, base has another inner interface: {error}")
    cases = chosen(commands.COMMANDS, groups)
    if cases:
        commands.write_files(PLACE / "data")
        runners = {side: commands.Runner(site, PLACE / side, PLACE / "data")
                   for side, site in sites.items()}  # fmt: skip
        cases, other, failures = commands.prepare(cases, runners)
        remarks += other
        measure = partial(commands.measure, runners=runners)
        found["commands"] = measured("commands", cases, measure, begun + LONGEST)
    print()
    for part, some in found.items():
        failures += slower(part, some)
    print(*remarks, *(f"FAILED {one}" for one in failures), sep="\n")
    n_cases, seconds = sum(map(len, found.values())), time.monotonic() - begun
    print(f"{n_cases} cases, {len(failures)} failures, {seconds:.0f} s without building {commit}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
