export const title = 'Sql'
export async function draw(place) {
  place.replaceChildren('…')
}
