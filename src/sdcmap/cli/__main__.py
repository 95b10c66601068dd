from sdcmap.cli import main

main()
