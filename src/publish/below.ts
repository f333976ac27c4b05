import type { Destination } from './destination.ts'

/** A folder of a place as a place of its own. */
export function below(place: Destination, folder: string): Destination {
  const at = (path: string): string => (path === '' ? folder : `${folder}/${path}`)
  return {
    uri: `${place.uri}/${folder}`,
    read: async (path) => await place.read(at(path)),
    get: async (path, file) => await place.get(at(path), file),
    list: async (path) =>
      (await place.list(at(path))).map((file) => ({ ...file, path: file.path.slice(folder.length + 1) })),
    create: async (path, body) => await place.create(at(path), body),
    put: async (path, file) => await place.put(at(path), file),
    replace: async (path, body) => await place.replace(at(path), body),
    remove: async (path) => await place.remove(at(path)),
  }
}
