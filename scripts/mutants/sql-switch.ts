import { type Mutant, textOf } from './sql-mutants.ts'

/** A text with its quotes, and what it is under each mutant. */
interface Literal {
  readonly start: number
  readonly end: number
  readonly variants: readonly { readonly id: string; readonly text: string }[]
}

/** A file of TypeScript in which each mutated text chooses, whenever it is read, what it is under the active mutant. */
export function switched(asked: readonly { readonly id: string; readonly mutant: Mutant }[]): string {
  const source = asked[0]?.mutant.source ?? ''
  const literals = [...Map.groupBy(asked, ({ mutant: { place } }) => place.start).values()].flatMap(
    (own): Literal[] => {
      const place = own[0]?.mutant.place
      if (!place) return []
      const [start, end] = [place.start - 1, place.end + 1]
      const variants = own.map(({ id, mutant }) => {
        const text = textOf(mutant)
        return { id, text: text.slice(start, end + text.length - source.length) }
      })
      return [{ start, end, variants }]
    },
  )
  return `${emit(source, 0, source.length, literals)}
function sqlMutantIs(id: string): boolean {
  return ((globalThis as any).sqlMutant ?? process.env['SQL_MUTANT']) === id
}
`
}

/** The characters in between, the outermost texts with their choices; of what stays, texts inside choose, too. */
function emit(source: string, from: number, to: number, literals: readonly Literal[]): string {
  const own = literals.filter(({ start, end }) => start >= from && end <= to)
  const outer = own.filter((one) => !own.some((other) => other.start < one.start && other.end > one.end))
  let text = ''
  let at = from
  for (const { start, end, variants } of outer.toSorted((a, b) => a.start - b.start)) {
    const inside = `${source.slice(start, start + 1)}${emit(source, start + 1, end - 1, literals)}${source.slice(end - 1, end)}`
    const choices = variants.map((one) => `sqlMutantIs('${one.id}') ? ${one.text} : `).join('')
    text += `${source.slice(at, start)}(${choices}${inside})`
    at = end
  }
  return text + source.slice(at, to)
}
