// What lrpc-files does with a Files server: list, copy in and out, checksum. It walks trees depth first. It does not
// trust the server: it limits what it accepts, and keeps control characters from the terminal.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "files.client.h"

namespace files {

/// A failed transfer; the text is one line for the user, path first. main catches it and prints its printable() form.
class TransferError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes `text`, which is partly from the server, safe for a terminal: replaces each control character (ASCII, UTF-8)
/// by '?'.
std::string printable(std::string_view text);

/// Copies `remote`, a file or a whole directory, to `local`, replacing existing files. Returns the number of files
/// copied.
std::size_t get(Files::Client& client, const std::string& remote, const std::filesystem::path& local);
/// Copies `local` to `remote`, likewise.
std::size_t put(Files::Client& client, const std::filesystem::path& local, const std::string& remote);
/// Prints the entries of a directory, or one line for a file.
void list(Files::Client& client, const std::string& remote);
/// Prints the SHA-256 of a file, or of every file of a directory, as sha256sum does.
void sum(Files::Client& client, const std::string& remote);

}  // namespace files
