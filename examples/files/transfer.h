// What lrpc-files does with a Files server: list, copy in and out, checksum. Trees are walked depth first. The server
// is not trusted: what it sends has limits, and does not control the terminal.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "files.client.h"

namespace files {

/// A transfer that failed: a line for the user, path first. Thrown to main, which prints what is printable() of it.
class TransferError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text`, of which the server wrote a part, for a terminal: each control character, of ASCII or UTF-8, becomes '?'.
std::string printable(std::string_view text);

/// Copies `remote`, a file or a whole directory, to `local`. Existing files are replaced. Returns how many files.
std::size_t get(Files::Client& client, const std::string& remote, const std::filesystem::path& local);
/// The other way round.
std::size_t put(Files::Client& client, const std::filesystem::path& local, const std::string& remote);
/// Prints the entries of a directory, or one line for a file.
void list(Files::Client& client, const std::string& remote);
/// Prints the SHA-256 of a file, or of every file of a directory, as sha256sum does.
void sum(Files::Client& client, const std::string& remote);

}  // namespace files
