import { nested, plain, point, supply } from '../../helpers/lakes/three-days.ts'
import { thirtyProducts } from '../../helpers/lakes/late-days-and-products.ts'
import { makeLake } from '../../helpers/lakes/make-lake.ts'
import { makeViews } from '../../helpers/views.ts'

/*
 * `node small-lake.ts FOLDER` makes the lake of the doctests: three days of March 2024, each value its day. With
 * `--more` it commits a fourth day of supply to it, as a job would.
 */

const [root = '', more] = process.argv.slice(2)
const supplied = (day: number) => [
  point(supply, day, { v: day, currency: 'native' }),
  point(supply, day, { v: day * 100, currency: 'usd' }),
]
const first = [1, 2, 3].flatMap((day) => [
  point(plain, day, day === 3 ? {} : { v: day }),
  point(nested, day, { o: `{"a":{"b":${day * 10}},"c":"text"}` }),
  ...supplied(day),
])
await makeLake(
  root,
  more === '--more'
    ? [{ at: '2024-04-02T12:00:00Z', points: supplied(4) }]
    : [{ at: '2024-04-01T12:00:00Z', points: first, tables: thirtyProducts() }],
)
await makeViews(root)
