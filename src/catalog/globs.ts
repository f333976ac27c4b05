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
