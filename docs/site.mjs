// A plugin of typedoc: names each page of the site by its first heading, which is what readers look for.
import { Renderer } from 'typedoc'

/** @param {import('typedoc').Application} app */
export function load (app) {
  // Not before: the addresses of the pages are made of the names of the files.
  app.renderer.on(Renderer.EVENT_BEGIN, ({ project }) => {
    for (const page of project.documents ?? []) {
      const heading = /^# (.*)$/m.exec(page.content.map(({ text }) => text).join(''))
      if (heading !== null) page.name = heading[1]
    }
  })
}
