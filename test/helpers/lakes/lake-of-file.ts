import { join } from 'node:path'
import { beforeAll } from 'vitest'
import { scratch } from '../scratch.ts'
import type { LakePlace, LakeRecipe, WrittenRecipe } from './lake-recipe.ts'
import { makeWithViews } from './make-lake.ts'

/** The lake of a recipe for all tests of a file: made with its views before the first of them, gone after the last. */
export function lakeOfFile(recipe: LakeRecipe | WrittenRecipe): LakePlace {
  const home = scratch(recipe.name)
  const root = join(home, 'lake')
  beforeAll(async () => await makeWithViews(root, recipe))
  return { home, root }
}
