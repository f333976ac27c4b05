import { type Named, namedLeaves } from '../merkle/state.ts'
import { rangeProof } from '../merkle/tree.ts'

/** Members of a tree of the state, each with its place in it, and what leads from them to its root. */
interface ProvenTree<More> {
  readonly members: readonly ({ readonly index: number; readonly name: string; readonly value: string } & More)[]
  readonly proof: readonly string[]
}

/** The proof of those members of a tree that are chosen, each with what is told of it. */
export function provenTree<More extends object>(
  all: readonly Named[],
  more: (name: string) => More | undefined,
): ProvenTree<More> {
  const members = all.flatMap(([name, value], index) => {
    const own = more(name)
    return own === undefined ? [] : [{ index, name, value, ...own }]
  })
  return {
    members,
    proof: rangeProof(
      namedLeaves(all),
      members.map(({ index }) => index),
    ),
  }
}
