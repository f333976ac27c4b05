/** A test for one pattern: `*` stands for any run of characters, everything else for itself. */
export function globTest(pattern: string): (text: string) => boolean {
  if (!pattern.includes('*')) return (text) => text === pattern
  const source = pattern
    .split('*')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
    .join('.*')
  const expression = new RegExp(`^${source}$`, 'su')
  return (text) => expression.test(text)
}

/** How exactly a pattern names a text: 0 not at all, then `*`, any other pattern, the text itself. */
export function globWeight(pattern: string, matches: (text: string) => boolean, text: string): number {
  if (!matches(text)) return 0
  return pattern === text ? 3 : pattern === '*' ? 1 : 2
}
