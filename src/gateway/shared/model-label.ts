/** The label `model` of a server: the model that it has, or a list of them. */

type Labelled = { readonly labels: Readonly<Record<string, string>> };

/** Empty without the label. */
export function modelsOf({ labels }: Labelled): string[] {
  return labels.model === undefined ? [] : labels.model.split(',').map((entry) => entry.trim());
}

/** True without the label: such a server may have any model. */
export const mayHave = (server: Labelled, model: string | undefined): boolean =>
  server.labels.model === undefined || model === undefined || modelsOf(server).includes(model);
