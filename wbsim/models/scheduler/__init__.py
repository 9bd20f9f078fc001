"""How processors are shared among those who want one."""
