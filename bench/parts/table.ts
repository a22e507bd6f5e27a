/** A Markdown table that is readable as it is: the first column to the left, figures to the right. */
export function table (head: string[], rows: string[][]): string {
  const widths = head.map((title, column) => Math.max(...[title, ...rows.map(row => row[column] ?? '')].map(cell => cell.length)))
  const line = (cells: string[]): string => `| ${cells.map((cell, column) => padded(cell, column, widths[column] ?? 0)).join(' | ')} |`
  const rule = `|${widths.map((width, column) => column === 0 ? '-'.repeat(width + 2) : '-'.repeat(width + 1) + ':').join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

function padded (cell: string, column: number, width: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}

/** Three digits are what such figures are good for. */
export function figure (value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

export function ratio (value: number, base: number): string {
  return (value / base).toFixed(2)
}
