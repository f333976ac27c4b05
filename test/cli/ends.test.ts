import { expect, test } from 'vitest'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import {
  commandsOfFiles,
  commandsOfTheLake,
  commandsThatAsk,
  commandsThatCopy,
  type Row,
} from '../helpers/ends-rows.ts'
import { playRows, specs } from '../helpers/ends-play.ts'
import { aLake, followed, published } from '../helpers/ends-words.ts'
import { isFullTier } from '../helpers/tiers.ts'

const unforeseen: Row = [
  'status',
  '',
  { with: 'broken-clock' },
  1,
  { error: { kind: 'unexpected', exit_code: 1 } },
  /^pitlake: Error: the clock is broken\n.* at /,
]

test('every command has a row for each exit code that it promises, and none for another', () => {
  const rows = [...commandsOfFiles, ...commandsThatAsk, ...commandsOfTheLake, ...commandsThatCopy]
  const promised = commandTable.flatMap(({ name }) =>
    [0, 2, ...(specs.get(name)?.exits ?? [])].map((code) => `${name} ${code}`),
  )
  const shown = rows.map(([command, , , code]) => `${command} ${code}`)
  // A watch that is told to stop: test/cli/watch.test.ts.
  expect([...new Set([...shown, 'watch 0'])].toSorted()).toEqual(promised.toSorted())
})

// The fast tier also plays what asks here; the full tier plays it in the other files.
const rows = [unforeseen, ...commandsOfFiles, ...commandsThatCopy, ...(isFullTier ? [] : commandsThatAsk)]
playRows(rows, [aLake, ...(isFullTier ? [] : [followed]), ...published], isFullTier)
