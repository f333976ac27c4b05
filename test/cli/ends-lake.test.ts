import { commandsOfTheLake } from '../helpers/ends-lake.ts'
import { playRows } from '../helpers/ends-play.ts'
import { aLake, stampedAndFresh } from '../helpers/ends-words.ts'

playRows(commandsOfTheLake, [aLake, ...stampedAndFresh])
