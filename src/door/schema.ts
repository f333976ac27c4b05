import { isObject } from '../json.ts'
import type { OptionFact, Options } from '../query/options.ts'

/**
 * A table of options as a schema for agents. It lets everything through: what does not fit is refused by whoever reads the
 * options, in the words of every other door.
 */
export function schemaOf(table: Options) {
  const properties = Object.entries(table).map(([name, fact]) => [
    name,
    { ...shapes[fact.kind](fact), description: fact.about },
  ])
  const schema = {
    type: 'object',
    properties: Object.fromEntries(properties) as Record<string, object>,
    required: Object.keys(table).filter((name) => table[name]?.required === true),
    additionalProperties: false,
  }
  return {
    '~standard': {
      version: 1,
      vendor: 'pitlake',
      validate: (value: unknown) => ({ value: isObject(value) ? value : {} }),
      jsonSchema: { input: () => schema, output: () => schema },
    },
  } as const
}

const text = { type: 'string' }
const texts = { type: 'array', items: text, minItems: 1 }
const choice = ({ choices = [] }: OptionFact) => ({ type: 'string', enum: choices })

const shapes: Readonly<Record<OptionFact['kind'], (fact: OptionFact) => object>> = {
  instant: () => text,
  span: () => ({ type: ['string', 'number'], examples: ['15m', '2d', 0] }),
  text: () => ({ ...text, minLength: 1 }),
  list: () => texts,
  switch: () => ({ type: 'boolean' }),
  choice,
  choices: (fact) => ({ type: 'array', items: choice(fact), minItems: 1 }),
  metrics: () => ({ anyOf: [texts, { type: 'object', additionalProperties: text, minProperties: 1 }] }),
  count: ({ most }) => ({ type: 'integer', minimum: 1, ...(most !== undefined && { maximum: most }) }),
  grid: () => ({
    type: 'object',
    properties: { since: text, until: text, step: { ...text, examples: ['15m', '1h', '1d', '1w', '1month'] } },
    required: ['since', 'until', 'step'],
    additionalProperties: false,
  }),
  records: () => ({
    type: 'array',
    items: { type: 'object', properties: { ts: text, asset: text }, required: ['ts'] },
    minItems: 1,
  }),
}
