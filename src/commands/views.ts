import { inLake, places } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'
import { buildViews } from '../views/build.ts'
import { bytes, whole } from '../words/figures.ts'
import { answering } from './spec.ts'
import { lakeWorld, requireLake } from './world.ts'

/** `views`: makes `lake.duckdb` and `lake.sql` anew. */
export const viewsCommand = answering({
  options: {},
  details:
    'fetch, registry and compact do this at their end. Both files hold views and macros only and are replaced\nwhole: open sessions go on with what they opened. docs/views.md describes every object.',
  answer: async (call) => {
    const { catalogue } = call
    const { data } = call.settings
    requireLake(data)
    using ledger = await Ledger.open(data)
    const built = await buildViews(ledger, { catalogue, force: true, deps: lakeWorld(call, 'views') })
    const { version, objects, files, bytes: size } = built
    const made = [places.database, places.script].map((place) => `  ${inLake(data, place)}\n`)
    const of = `${objects} objects over ${whole(files)} files of version ${version} (${bytes(size)})`
    return { document: built, words: () => `${of}:\n${made.join('')}` }
  },
})
