"""Records of the model as views of the wire. One way only: nothing here changes anything."""
