/** The data of the first steps, and the props of each step. */
export interface Status {
  project: string;
  first_run: boolean;
  version: string;
}
export interface Setting {
  name: string;
  value: unknown;
  set: boolean;
  secret: boolean;
}
export interface Settings {
  settings: Setting[];
}
export interface StepProps {
  status: Status;
  settings: readonly Setting[];
  next: () => void;
  skip: () => void;
  back?: () => void;
}

export function settingOf(settings: readonly Setting[], name: string): Setting | undefined {
  return settings.find((one) => one.name === name);
}
