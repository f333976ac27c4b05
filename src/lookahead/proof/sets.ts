import { lost } from './joins.ts'
import { boundOf, nameOf, type Reading, type Relation, steady } from './relations.ts'
import { addValue, allOf, always, type Bound, coveredBy, type Fact, isNotLater, isObstacle, valueOf } from './values.ts'

/** UNION ALL: a row is known when it is on its side. Columns that are not known on one side are not known. */
export function united(reading: Reading, left: Relation, right: Relation): Relation {
  return merged(reading, [timely(reading, left), timely(reading, right)])
}

/** EXCEPT and INTERSECT compare whole rows: equal ones have equal instants, and all of their columns count. */
export function compared(reading: Reading, left: Relation, right: Relation): Relation {
  const whole = (side: Relation): Relation => ({ ...side, rows: allOf(side.rows, boundOf(reading, side.columns)) })
  const all = merged(reading, [whole(left), whole(right)])
  return isObstacle(all.rows) ? lost(all.rows, all.columns) : all
}

/** The same rows, known together with those of their columns that are ever known. */
function timely(reading: Reading, side: Relation): Relation {
  const bounds = side.columns.map((id) => boundOf(reading, [id])).filter((bound) => !isObstacle(bound))
  return { ...side, rows: allOf(side.rows, ...bounds) }
}

/** The columns of both sides as one, by their places, with what is true of them on either side. */
function merged(reading: Reading, sides: readonly [Relation, Relation]): Relation {
  const { values } = reading
  const [left, right] = sides
  const columns = left.columns.map((id, at) => {
    const bound = boundOf(reading, [id, ...right.columns.slice(at, at + 1)])
    const { text, type } = valueOf(values, id)
    return addValue(values, text, type, isObstacle(bound) ? bound : always)
  })
  const holds = (i: number, j: number): boolean =>
    sides.every(({ columns: own, facts }) => isNotLater(values, facts, own[i] ?? -1, own[j] ?? -1))
  const facts = columns.flatMap((one, i) =>
    columns.flatMap((other, j): Fact[] => (i !== j && holds(i, j) ? [[one, other]] : [])),
  )
  const present = columns.filter((_, at) => sides.every((side) => side.present.has(side.columns[at] ?? -1)))
  const all = { ...steady(columns), facts, present: new Set(present) }
  return { ...all, rows: rowsOf(reading, sides, all) }
}

/** The columns at whose instants the rows of both sides are known: one for both where there is one, else those of each. */
function rowsOf(reading: Reading, sides: readonly [Relation, Relation], all: Relation): Bound {
  const placesOf = ({ rows, columns, facts }: Relation, candidates: readonly number[]): readonly number[] | Bound => {
    if (isObstacle(rows)) return rows
    const found = coveredBy(
      reading.values,
      facts,
      rows,
      candidates.flatMap((at) => columns[at] ?? []),
    )
    const what = 'UNION, EXCEPT or INTERSECT'
    if ('uncovered' in found) return { what, why: `no column of a side bounds ${nameOf(reading, found.uncovered)}` }
    const places = [...found.by].map((id) => columns.indexOf(id))
    return places.includes(-1) ? { what, why: 'a side is known at an instant that is no column of it' } : places
  }
  const every = [...all.columns.keys()]
  const alone = every.filter((at) => sides.every((side) => Array.isArray(placesOf(side, [at]))))
  const ids = alone.flatMap((at) => all.columns[at] ?? [])
  const least = ids.find((one) => ids.every((other) => isNotLater(reading.values, all.facts, one, other)))
  const known = sides.map((side) => placesOf(side, every))
  const bad = known.find((held): held is Bound => !Array.isArray(held))
  if (bad !== undefined) return bad
  if (known.every((held) => Array.isArray(held) && held.length === 0)) return always
  if (ids.length > 0) return new Set([least ?? ids[0] ?? -1])
  return new Set(
    known
      .flatMap((held) => (Array.isArray(held) ? (held as readonly number[]) : []))
      .flatMap((at) => all.columns[at] ?? []),
  )
}
