"""Toolyard as a server of the Model Context Protocol, over stdio and over HTTP. The SDK is loaded when it is used."""
