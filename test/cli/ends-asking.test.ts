import { commandsThatAsk } from '../helpers/ends-rows.ts'
import { playRows } from '../helpers/ends-play.ts'
import { aLake, followed } from '../helpers/ends-words.ts'
import { long } from '../helpers/shares.ts'

playRows(commandsThatAsk, [aLake, followed], long)
