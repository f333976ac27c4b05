import { expect, test } from 'vitest'
import { distinctNotes, type Door, type Note, noteText } from '../../src/query/note.ts'

const doors: readonly Door[] = ['terminal', 'fields', 'typescript']
const said = (note: Note): readonly string[] => doors.map((door) => noteText(note, door))

test('a note says an option as whoever asks would type it', () => {
  const note: Note = { code: 'registry-unknown', subject: 'registry', figures: { start: '2024-03-01 00:00:00+00' } }
  const words = (option: string): string =>
    `the registry is not known at this as_of: it is known since 2024-03-01 00:00:00+00; \`${option}\` lets its earliest state stand in`
  expect(said(note)).toEqual(
    ['--set registry_backfill=true', 'registry_backfill: true', 'registryBackfill: true'].map(words),
  )
  const lost: Note = { code: 'no-member', subject: "status = 'sold'" }
  expect(said(lost)).toEqual(
    ['--universe', 'universe', 'universe'].map(
      (option) => `no product met ${option} at any of the instants: status = 'sold'`,
    ),
  )
})

test('a note tells what may have been meant, else what there is', () => {
  const lost = { code: 'no-asset', subject: 'supply/current_pit', figures: { asset: 'btc' } } as const
  const words = (end: string): string => `nothing is held of 'supply/current_pit' for asset 'btc'${end}`
  expect(noteText(lost, 'fields')).toBe(words(''))
  expect(noteText({ ...lost, near: ['BTC', 'BTX'] }, 'fields')).toBe(words("; did you mean 'BTC' or 'BTX'?"))
  expect(noteText({ ...lost, there: ['A'] }, 'fields')).toBe(words("; there is 'A'"))
  const many = [...'ABCDEFGH']
  expect(noteText({ ...lost, there: many }, 'fields')).toBe(words("; there are 'A', 'B', 'C', 'D', 'E', 'F'"))
  const whole: Note = { code: 'whole-object', subject: 'm/x', there: ['m/x#/a', 'm/x#/b', 'm/x#/c'] }
  expect(noteText(whole, 'terminal')).toBe(
    "'m/x' holds objects or lists: ask for a part of them, such as 'm/x#/a' or 'm/x#/b'",
  )
})

test('the same note is told once', () => {
  const one: Note = { code: 'nothing-held', subject: 'm/x' }
  expect(distinctNotes([one, { ...one }, { ...one, subject: 'm/y' }])).toEqual([one, { ...one, subject: 'm/y' }])
})
