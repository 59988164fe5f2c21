const FEW = 6;

/**
 * Names periods so that none is read into the list that is not in it: three or more that follow one another in `among` are a range,
 * others stand alone. Of many parts only the first and the last period are named, as what the others lie between.
 */
export function periodList(periods: readonly string[], among: readonly string[] = []): string {
  const parts = runsOf(periods, among).flatMap((run) => (run.length > 2 ? [`${run[0]} to ${run.at(-1)}`] : run));
  if (parts.length <= FEW) return parts.join(', ');
  return `between ${periods[0]} and ${periods.at(-1)}`;
}

function runsOf(periods: readonly string[], among: readonly string[]): string[][] {
  const places = new Map(among.map((period, at) => [period, at]));
  const runs: string[][] = [];
  let expected: number | undefined;
  for (const period of periods) {
    const place = places.get(period);
    const current = runs.at(-1);
    if (current !== undefined && place !== undefined && place === expected) current.push(period);
    else runs.push([period]);
    expected = place === undefined ? undefined : place + 1;
  }
  return runs;
}
