/**
 * What an application takes in with the library, beside what it takes in with better-auth: packages and bytes that come to a project which
 * has Fastify already. Drivers of databases, which both leave to the application, are in neither.
 */
import assert from 'node:assert/strict'
import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { withProject } from './project.mjs'

const OURS = 'fastify-svc-auth'
const OTHER = 'better-auth'

await withProject(async project => {
  await project.install('fastify')
  const base = await installed(project)
  const sizes = { [OURS]: await sizeOf(project, OURS, base), [OTHER]: await sizeOf(project, OTHER, base) }

  console.table(sizes)
  for (const measure of Object.keys(sizes[OURS])) {
    assert(sizes[OURS][measure] < sizes[OTHER][measure], `${OURS} is to be smaller than ${OTHER}: ${measure}`)
  }
})

/** Installs a package in place of the one before, and tells what comes with it. */
async function sizeOf (project, name, base) {
  await project.tryOut(name)
  const added = [...await installed(project)].filter(folder => !base.has(folder))
  let bytes = 0
  for (const folder of added) bytes += await bytesIn(project.path(folder))
  return { 'transitive dependencies': added.length - 1, 'MB installed': Math.round(bytes / 1e4) / 100 }
}

/** The folders of all packages that npm has installed. */
async function installed (project) {
  const { packages } = JSON.parse(await readFile(project.path('node_modules/.package-lock.json'), 'utf8'))
  return new Set(Object.keys(packages))
}

/** What the files of a package take, without those of packages inside it. */
async function bytesIn (folder) {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && entry.name !== 'node_modules') bytes += await bytesIn(path)
    else if (entry.isFile()) bytes += (await stat(path)).size
  }
  return bytes
}
