/**
 * The names in a PromQL query: metrics, and the labels that it uses.
 */

/** The metrics that a query names: what stands before braces. */
export function metricsOf(expr: string): string[] {
  const bare = expr.replace(/`[^`]*`/g, '""');
  const selected = [...bare.matchAll(/([a-z_]\w*)\{/g)].map(([, name]) => name ?? '');
  return selected.length > 0 || !/^\w+$/.test(bare) ? selected : [bare];
}

/** The labels that a query names, each where it stands. */
export function labelsOf(expr: string): string[] {
  const bare = expr.replace(/`[^`]*`/g, '""');
  const grouped = [...bare.matchAll(/\b(?:by|on|group_left) \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list === '' ? [] : list.split(', '),
  );
  return [...grouped, ...[...bare.matchAll(/[{,] ?(\w+)=~/g)].map(([, label]) => label ?? '')];
}
