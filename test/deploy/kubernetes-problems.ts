import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * The faults of manifests by the declarations of kubernetes-types, which are made from Kubernetes' own OpenAPI schema.
 */
export function problemsOf(list: readonly { apiVersion: string; kind: string }[]): string[] {
  const code = list.map((one, index) => {
    const [group, version = group] = one.apiVersion.includes('/')
      ? one.apiVersion.split('/')
      : ['core', one.apiVersion];
    const folder = group!.split('.')[0];
    return `import type { ${one.kind} as K${index} } from 'kubernetes-types/${folder}/${version}';\nexport const m${index}: Required<Pick<K${index}, 'apiVersion' | 'kind' | 'metadata'>> & K${index} = ${JSON.stringify(one)};`;
  });
  const file = fileURLToPath(new URL('manifests.mts', import.meta.url));
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists.call(host, name);
  host.getSourceFile = (name, target) =>
    name === file ? ts.createSourceFile(name, code.join('\n'), target) : getSourceFile.call(host, name, target);
  const program = ts.createProgram([file], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
