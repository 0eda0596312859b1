// The root of a container that has no image of its own: nothing, in which everything is mounted.
import { SallyportError } from '../../errors.ts'
import type { Waiting } from './answers.ts'
import type { Engine } from './engine.ts'

const reference = 'sallyport/empty'

/** A tar archive without an entry, and its sha256, by which the engine knows the layer. */
const archive = Buffer.alloc(1024)
const layer = 'sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef'

let making: Promise<void> = Promise.resolve()

/** Returns the id of an image with nothing in it, made where the engine has none. Throws ERR_ENGINE_REFUSED where somebody gave its name to another. */
export const emptyRoot = async (engine: Engine, waiting: Waiting = {}): Promise<string> => {
  const found = await find(engine, waiting)
  if (found !== null) return found
  // One after another: two at once would leave one without a name.
  making = making.then(
    () => make(engine, waiting),
    () => make(engine, waiting),
  )
  await making
  const made = await find(engine, waiting)
  if (made !== null) return made
  throw new SallyportError(
    'ERR_ENGINE_REFUSED',
    `the container engine did not keep the image ${reference}; see its log`,
    {
      image: reference,
    },
  )
}

const make = async (engine: Engine, waiting: Waiting): Promise<void> => {
  if ((await find(engine, waiting)) === null) await engine.importImage(archive, reference, waiting)
}

const find = async (engine: Engine, waiting: Waiting): Promise<string | null> => {
  const facts = await engine.image(reference, waiting)
  if (facts === null) return null
  const layers = facts.RootFS.Layers ?? []
  if (layers.length === 1 && layers[0] === layer) return facts.Id
  throw new SallyportError(
    'ERR_ENGINE_REFUSED',
    `the image ${reference} is not the empty one that sallyport made; see whose it is, and remove it`,
    { image: reference, layers },
  )
}
