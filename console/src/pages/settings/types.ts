/** The settings as the server lists them. */
import type { SettingsDetail } from "toolyard-client";
import type { Resource } from "../../lib/resource";

export interface TabProps {
  all: Resource<SettingsDetail>;
}
