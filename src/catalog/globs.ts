/** Compiles a pattern into a test: `*` matches any run of characters, every other character matches itself. */
export function globTest(pattern: string): (text: string) => boolean {
  if (!pattern.includes('*')) return (text) => text === pattern
  const source = pattern
    .split('*')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
    .join('.*')
  const expression = new RegExp(`^${source}$`, 'su')
  return (text) => expression.test(text)
}

/**
 * Returns how precisely a pattern matches a text: 0 not at all, 1 for `*`, 2 for any other pattern, 3 for the text
 * itself.
 */
export function globWeight(pattern: string, matches: (text: string) => boolean, text: string): number {
  if (!matches(text)) return 0
  return pattern === text ? 3 : pattern === '*' ? 1 : 2
}
