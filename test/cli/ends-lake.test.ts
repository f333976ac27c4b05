import { commandsOfTheLake } from '../helpers/ends-rows.ts'
import { playRows } from '../helpers/ends-play.ts'
import { aLake, stampedAndFresh } from '../helpers/ends-words.ts'
import { long } from '../helpers/shares.ts'

playRows(commandsOfTheLake, [aLake, ...stampedAndFresh], long)
