"""The MCP server: commands of the command line as tools for scripts and agents."""
