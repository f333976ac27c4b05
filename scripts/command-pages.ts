import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { helpText } from '../src/interfaces/cli/parse.ts'
import { commandTable } from '../src/interfaces/commands/table.ts'
import { exitMeanings } from '../src/base/errors.ts'

/** The command reference, made from the same tables as `--help`. */
export async function commandPages(): Promise<string> {
  const specs = await Promise.all(commandTable.map(async (entry) => await entry.load()))
  const pages = specs.map((spec) => `## ${spec.name}\n\n\`\`\`text\n${helpText(spec).trimEnd()}\n\`\`\`\n`)
  const intro = [
    '# Commands',
    '',
    'This page is made from the option tables of the program (`node scripts/command-pages.ts`); `--help` prints the same.',
    'Type `pitlake <command>` in `make shell`. [Install](../tutorials/quick-start.md#install) shows how to get the command elsewhere.',
    '',
    '| exit code | meaning |',
    '| --- | --- |',
    ...Object.entries(exitMeanings).map(([code, meaning]) => `| ${code} | ${meaning} |`),
    '',
    'Each command below lists the codes with which it can end. Messages of 4, 6 and 7 name the command to type next. With `--json` a command prints',
    'one [JSON document](json.md). If it fails before it has a result, the document is `{"error": {"kind", "exit_code", "complaints"}}`.',
    '',
    '',
  ]
  return intro.join('\n') + pages.join('\n')
}

/** Where the reference stands. */
export const commandPagesFile = fileURLToPath(new URL('../docs/reference/commands.md', import.meta.url))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await commandPages()
  if (!process.argv.includes('--check')) writeFileSync(commandPagesFile, text)
  else if (readFileSync(commandPagesFile, 'utf8') !== text)
    throw new Error('docs/reference/commands.md is old: node scripts/command-pages.ts')
}
