import fc from 'fast-check'
import './expected-patterns.ts'

// Properties try the same cases each time; `PITLAKE_SEED` draws others.
fc.configureGlobal({ seed: Number(process.env['PITLAKE_SEED'] ?? 1) })
