import { statementsIn } from '../store/sql.ts'

/** The statements of this room. */
export const statement = statementsIn(new URL('sql/', import.meta.url))
