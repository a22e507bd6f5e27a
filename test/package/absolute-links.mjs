/**
 * Makes the links of the pages in the package absolute, before it is published: they lead to the files of the version in the repository that
 * the package names. The folders with the guides are not in the package.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const PAGES = ['README.md', 'CHANGELOG.md']

/** The target of a link of Markdown or HTML, unless it is a URL or a heading of the page. */
const TARGET = /(?<=\]\(|\b(?:href|src|srcset)=")(?![a-z][a-z\d+.-]*:|[#/])[^\s")]+/g

const { version, repository } = JSON.parse(readFileSync('package.json', 'utf8'))
const base = `${repository.url.replace(/^git\+|\.git$/g, '')}/`

for (const page of PAGES) {
  const text = readFileSync(page, 'utf8')
  // A fenced block is code: its links are those of an application.
  const parts = text.split(/^(```[\s\S]*?^```)/m)
  writeFileSync(page, parts.map((part, index) => index % 2 === 1 ? part : part.replace(TARGET, absolute)).join(''))
}

function absolute (target) {
  return new URL(`${/\.(?:png|svg)$/.test(target) ? 'raw' : 'blob'}/v${version}/${target}`, base).href
}
