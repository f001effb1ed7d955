import { beforeEach, expect, test } from "vitest";
import { chatModels, isUnavailable, models, rememberModel, unavailable, usualModel } from "./models";

beforeEach(() => {
  rememberModel("");
  models.value = [{ id: "text-embedding-small" }, { id: "star-1" }, { id: "star-2" }, { id: "tour" }];
  unavailable.value = [];
});

test("a new chat has the last model, else the first that can chat", () => {
  expect(chatModels()).toEqual(["star-1", "star-2", "tour"]);
  expect(usualModel()).toBe("star-1");
  rememberModel("star-2");
  expect(usualModel()).toBe("star-2");
  rememberModel("gone");
  expect(usualModel()).toBe("star-1");
});

test("only a server without a provider has the guide as its model", () => {
  rememberModel("tour");
  expect(usualModel()).toBe("star-1");
  models.value = [{ id: "tour" }];
  expect(usualModel()).toBe("tour");
  unavailable.value = ["near"];
  expect(usualModel()).toBe("");
  rememberModel("star-2");
  expect(usualModel()).toBe("star-2");
});

test("a model is unavailable while its provider does not answer", () => {
  models.value = [{ id: "star-1", available: false }, { id: "other-1" }, { id: "tour" }];
  unavailable.value = ["near"];
  expect(usualModel()).toBe("star-1");
  expect(["star-1", "other-1", "tour", "never-listed", ""].map(isUnavailable)).toEqual([
    true,
    false,
    false,
    true,
    true,
  ]);
});
