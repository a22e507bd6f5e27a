import neostandard from 'neostandard'
import regexp from 'eslint-plugin-regexp'

const FROM_PIECES = 'A URL that is pasted together lets its pieces change what it means; use URL and URLSearchParams, and lib/core/redirects.ts for where a browser is sent.'

const TESTS = 'lib/**/*.{test,long}.ts'

export default [
  ...neostandard({ ts: true, ignores: ['dist/**', 'coverage/**', 'site/**', '.tap/**', '**/.next/**'] }),
  { ignores: ['examples/*/dist/**'] },
  {
    files: ['lib/**', 'examples/**'],
    ignores: [TESTS],
    plugins: { regexp },
    rules: {
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-script-url': 'error',
      'no-restricted-properties': ['error', { object: 'Math', property: 'random', message: 'Anybody can predict it; use node:crypto.' }],
      'no-restricted-globals': ['error', { name: 'RegExp', message: 'An expression made of a text is one that somebody else may write; use a literal.' }],
      'regexp/no-super-linear-backtracking': 'error',
      'regexp/no-super-linear-move': 'error'
    }
  },
  {
    files: ['lib/**'],
    // The migrations are generated.
    ignores: ['lib/engines/*/migrations.ts', TESTS],
    rules: { '@stylistic/max-len': ['error', { code: 120, comments: 100, ignoreUrls: true }] }
  },
  {
    files: ['lib/**'],
    ignores: [TESTS],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...['NewExpression[callee.name="URL"]', 'CallExpression[callee.property.name="redirect"]'].flatMap(call => [
          { selector: `${call} > TemplateLiteral[expressions.length>0].arguments:first-child`, message: FROM_PIECES },
          { selector: `${call} > BinaryExpression.arguments:first-child`, message: FROM_PIECES }
        ]),
        { selector: 'TemplateElement[value.raw=/[?&][\\w-]+=$/][tail=false]', message: FROM_PIECES },
        { selector: 'BinaryExpression[operator="+"] Literal[value=/[?&][\\w-]+=$/]', message: FROM_PIECES }
      ]
    }
  }
]
