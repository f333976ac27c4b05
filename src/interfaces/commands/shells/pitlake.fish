function __pitlake
  set -l typed (commandline -opc) (commandline -ct | string collect --allow-empty)
  for line in ($typed[1] completion fish -- $typed[2..-1] 2>/dev/null)
    switch $line
      case :file
        __fish_complete_path (commandline -ct)
      case :folder
        __fish_complete_directories (commandline -ct)
      case '*'
        string replace ' ' \t -- $line
    end
  end
end
complete -c pitlake -f -a '(__pitlake)'
